// As tasks.mjs, in CommonJS.

const { App } = require("meshwork");

const app = new App();

exports.sendMail = app.task("mail.send", { retries: 3, timeout: "30s" }, async ({ to, subject = "Hello" }) => {
  console.log("to", to);
  return `sent ${subject} to ${to}`;
});
