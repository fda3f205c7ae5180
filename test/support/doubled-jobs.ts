import { type JobsOptions, Queue } from 'bullmq';

/** Loaded into a process of the service (`--import`): each of its jobs comes a second time, somewhat later. */
const addBulk = Queue.prototype.addBulk;
const laterMs = 300;

Queue.prototype.addBulk = function (jobs) {
  const again = jobs.map((job) => ({ ...job, opts: later(job.opts ?? {}) }));
  return addBulk.call(this, [...jobs, ...again]);
};

function later(opts: JobsOptions): JobsOptions {
  return { ...opts, jobId: `${opts.jobId}.again`, delay: (opts.delay ?? 0) + laterMs };
}
