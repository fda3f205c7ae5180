/** ISO 8601 UTC with milliseconds, the only form of time that leaves the service. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
