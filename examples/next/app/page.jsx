export const dynamic = 'force-dynamic'; // a new id for each order

export default async function Home() {
  const { price } = await import('../orders.js');
  return (
    <form method="post" action="/orders">
      <h1>Coffee, 1 kg: TZS {price.toLocaleString('en')}</h1>
      <input type="hidden" name="id" value={crypto.randomUUID()} />
      <input name="phone" type="tel" required maxLength="30" placeholder="Phone" aria-label="Phone" />
      <button type="submit">Pay</button>
    </form>
  );
}
