import { notFound } from 'next/navigation';

const words = {
  pending: 'Check your phone and enter your PIN.',
  paid: 'Paid. Thank you!',
  held: 'Your money came late. We will call you.',
};

export default async function Order({ params }) {
  const { find } = await import('../../../orders.js');
  const { status, note } = find((await params).id) ?? notFound();
  return (
    <p>
      {status === 'pending' && <meta httpEquiv="refresh" content="3" />}
      {words[status] ?? `Not paid. ${note}`} {status === 'unpaid' && <a href="/">Try again</a>}
    </p>
  );
}
