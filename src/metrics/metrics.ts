/** What Prometheus is told: counted as it happens, or read when it asks. */
export { Metrics } from './counts.ts';
export { Gauges } from './gauges.ts';
export { observeWork, type WorkObserver } from './work.ts';
