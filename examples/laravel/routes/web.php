<?php

use App\Orders;
use Illuminate\Http\Request;
use Illuminate\Support\Facades\DB;
use Illuminate\Support\Facades\Route;
use Illuminate\Support\Str;

Route::get('/', fn () => view('home', ['id' => Str::uuid(), 'price' => Orders::PRICE]));

Route::post('/orders', function (Request $request) {
    $order = $request->validate(['id' => 'required|uuid', 'phone' => 'required|string|max:30']);
    // The form made the id: a button that is pressed twice is one order, and one prompt.
    DB::table('orders')->insertOrIgnore([...$order, 'amount' => Orders::PRICE]);
    Orders::send(DB::table('orders')->find($order['id']));
    return redirect("/orders/{$order['id']}");
});

Route::get('/orders/{id}', function (string $id) {
    $order = DB::table('orders')->find($id) ?? abort(404);
    $headers = $order->status === 'pending' ? ['Refresh' => '3'] : [];
    return response()->view('order', ['order' => $order], 200, $headers);
});

Route::post('/hooks', function (Request $request) {
    $body = $request->getContent(); // as it came
    abort_unless(is_genuine($body, $request->header('Service-Signature'), config('kusanya.webhook_secret')), 400);
    Orders::take(json_decode($body, true));
    return response('');
});
