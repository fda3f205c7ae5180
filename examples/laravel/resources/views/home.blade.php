<title>Shop</title>
<h1>Coffee, 1 kg: TZS {{ $price }}</h1>
<form method="post" action="/orders">@csrf<input type="hidden" name="id" value="{{ $id }}">
<label>Phone <input name="phone" type="tel" required maxlength="30"></label> <button type="submit">Pay</button></form>
