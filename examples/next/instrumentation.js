/** Next calls it once when the server starts: the poller begins. On a serverless host let a cron job call poll(). */
export async function register() {
  if (process.env.NEXT_RUNTIME !== 'nodejs') return;
  const { poll } = await import('./orders.js');
  const next = async () => {
    await poll().catch((error) => console.error(`not polled: ${error.message}`));
    setTimeout(next, Number(process.env.POLL_SECONDS ?? '30') * 1_000);
  };
  next();
}
