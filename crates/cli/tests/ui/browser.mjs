// Opens the pages of a dashboard in Chromium: in light and dark, on a wide and a narrow screen, and without JavaScript. Follows
// all links, and a flow that goes on. Prints one line of JSON for each page, link and fault, and at the
// end the numbers of links and pages.
//
//   node browser.mjs MODULES CHROMIUM URL KEY FLOW PATH...

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const [modules, chromium, url, key, flow, ...paths] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const { default: puppeteer } = await import(require.resolve("puppeteer-core"));
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

let faults = 0;
function fault(where, what) {
  faults += 1;
  console.log(JSON.stringify({ where, what }));
}

const browser = await puppeteer.launch({
  executablePath: chromium,
  headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
});

async function sign_in(page) {
  await page.goto(`${url}/ui/`, { waitUntil: "domcontentloaded" });
  if (!(await page.$("form.sign-in"))) return;
  await page.type("#key", key);
  await Promise.all([page.waitForNavigation({ waitUntil: "domcontentloaded" }), page.click("form.sign-in button")]);
  if (await page.$("form.sign-in")) fault("sign-in", "the key does not sign in");
}

async function open(page, path, where) {
  const answer = await page.goto(`${url}${path}`, { waitUntil: "domcontentloaded" });
  if (!answer.ok()) fault(where, `status ${answer.status()}`);
  await page.waitForSelector("h1");
}

// The page of a flow with an open approval shows its end without a reload.
async function follow(page) {
  await open(page, flow, "flow");
  await page.waitForSelector("#live:not([hidden])", { timeout: 10000 });
  await page.evaluate(async () => {
    window.opened = true;
    const form = document.querySelector("form[action$='/do/flow.approve']");
    await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
  });
  const ended = () => window.opened && !document.querySelector("form[action$='/do/flow.approve']");
  await page.waitForFunction(ended, { timeout: 10000 }).catch(() => fault("flow", "the page does not follow the flow"));
}

// Pictures of pages for readers: the name of the file, the path of the page.
const pictures = { overview: "/ui/", flow };
async function take_pictures(page, folder) {
  await page.setViewport({ width: 1280, height: 800 });
  for (const [name, path] of Object.entries(pictures)) {
    await open(page, path, name);
    await page.waitForSelector("#live:not([hidden])", { timeout: 10000 });
    await page.screenshot({ path: `${folder}/dashboard-${name}.png` });
  }
}

const links = new Set();
let pages = 0;
try {
  const page = await browser.newPage();
  page.on("console", (message) => message.type() === "error" && fault(page.url(), `console: ${message.text()}`));
  page.on("pageerror", (error) => fault(page.url(), `script: ${error.message}`));
  // The policy of the pages forbids the checker, and is checked by other tests.
  await page.setBypassCSP(true);
  await sign_in(page);
  if (process.env.MESHWORK_PICTURES) await take_pictures(page, process.env.MESHWORK_PICTURES);
  for (const scheme of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    for (const width of [1280, 360]) {
      await page.setViewport({ width, height: 800 });
      for (const path of paths) {
        const where = `${path} ${scheme} ${width}`;
        await open(page, path, where);
        pages += 1;
        console.log(JSON.stringify({ page: where }));
        const found = await page.$$eval("a[href]", (all) => all.map((link) => new URL(link.href.baseVal ?? link.href, location.href).href.split("#")[0]));
        found.filter((link) => link.startsWith(url)).forEach((link) => links.add(link));
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        if (wide > 0) fault(where, `${wide} px wider than the screen`);
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
        for (const { id, nodes } of violations) fault(where, `${id}: ${nodes[0].html} (${nodes[0].failureSummary})`);
      }
    }
  }
  for (const link of links) {
    const status = await page.evaluate(async (link) => (await fetch(link)).status, link);
    console.log(JSON.stringify({ link, status }));
    if (status !== 200) fault(link, `the link gives status ${status}`);
  }
  await follow(page);
  // Without the bypass: the policy lets the own script and styles run.
  const plain = await browser.newPage();
  plain.on("console", (message) => message.type() === "error" && fault("policy", message.text()));
  await open(plain, paths[0], "policy");
  if (!(await plain.evaluate(() => getComputedStyle(document.querySelector(".shell")).display === "grid"))) fault("policy", "no style");
  await plain.waitForSelector("#live:not([hidden])", { timeout: 10000 }).catch(() => fault("live", "the page does not become live"));
  // The main path without JavaScript: search a job, cancel it.
  const bare = await browser.newPage();
  await bare.setJavaScriptEnabled(false);
  await open(bare, "/ui/", "no script");
  await bare.type("#q", "late");
  await Promise.all([bare.waitForNavigation(), bare.keyboard.press("Enter")]);
  const cancel = await bare.$("form[action$='/do/job.cancel'] button");
  if (!cancel) fault("no script", "the job has no button");
  else {
    await Promise.all([bare.waitForNavigation(), cancel.click()]);
    if (!(await bare.$(".flash"))) fault("no script", "the job was not cancelled");
  }
} finally {
  await browser.close();
}
console.log(JSON.stringify({ links: links.size, pages, faults }));
