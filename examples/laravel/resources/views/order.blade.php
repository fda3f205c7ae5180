<title>Order</title>
@if ($order->status === 'pending') <p>Check your phone and enter your PIN.</p>
@elseif ($order->status === 'paid') <p>Paid. Thank you!</p>
@elseif ($order->status === 'held') <p>Your money came late. We will call you.</p>
@else <p>Not paid. {{ $order->note }} <a href="/">Try again</a></p> @endif
