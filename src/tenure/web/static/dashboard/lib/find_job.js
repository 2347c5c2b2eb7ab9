// Jobs by a part of their id: its beginning, or the eight characters at its end that pages show.
import { get } from "./api.js";

const PART = /^[0-9a-f][0-9a-f-]{5,34}$/i;
const LOWEST = 7; // characters: fewer fit thousands of jobs

const dashed = (digits) => digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");

export const isPartOfId = (text) => PART.test(text) && text.replace(/-/g, "").length >= LOWEST;

/** The jobs that fit, at most three. By its end a job is found among the newest ones only: ids are stored in the order of their beginning. */
export async function findJobs(text) {
  const digits = text.toLowerCase().replace(/-/g, "");
  const above = dashed(digits.padEnd(32, "f"));
  const [before, newest] = await Promise.all([get("/jobs", { after: above, limit: 3 }), digits.length === 8 ? get("/jobs", { limit: 200, max_age: 5 }) : { jobs: [] }]);
  const plain = (job) => job.id.replace(/-/g, "");
  const found = [...before.jobs.filter((job) => plain(job).startsWith(digits)), ...newest.jobs.filter((job) => plain(job).endsWith(digits))];
  return [...new Map(found.map((job) => [job.id, job])).values()].slice(0, 3);
}
