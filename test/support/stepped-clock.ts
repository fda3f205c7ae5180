import process from 'node:process';

/**
 * Loaded into a process of the service (`--import`): on SIGUSR2 its wall clock is set an hour forward, then an hour
 * back from where it was, then right again. As with a real clock that is set, the time that passes is not touched.
 */
const hourMs = 3_600_000;
const steps = [hourMs, -hourMs, 0];
const RealDate = Date;
let offsetMs = 0;

class SteppedDate extends RealDate {
  constructor(...given: [] | [number | string | Date]) {
    super(...((given.length === 0 ? [SteppedDate.now()] : given) as [number]));
  }

  static override now(): number {
    return RealDate.now() + offsetMs;
  }
}

globalThis.Date = SteppedDate as DateConstructor;
process.on('SIGUSR2', () => {
  offsetMs = steps.shift() ?? 0;
});
