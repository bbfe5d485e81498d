// An app with a task: `meshwork worker --app ./tasks.mjs` runs it.

import { App } from "meshwork";

// Without a URL: REDIS_URL names a server, else the jobs are in a folder, MESHWORK_DATA.
export const app = new App();

export const sendMail = app.task("mail.send", { retries: 3, timeout: "30s" }, async ({ to, subject = "Hello" }) => {
  console.log("to", to);
  return `sent ${subject} to ${to}`;
});
