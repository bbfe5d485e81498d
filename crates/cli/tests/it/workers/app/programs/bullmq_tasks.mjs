// The app that gets the jobs of a queue of BullMQ.
import { App } from "meshwork";

export const app = new App();
export const send = app.task("mail.send", ({ to }, ctx) => `sent to ${to}, attempt ${ctx.attempt}`);
