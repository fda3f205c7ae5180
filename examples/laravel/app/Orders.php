<?php

namespace App;

use Illuminate\Http\Client\{ConnectionException, PendingRequest};
use Illuminate\Support\Carbon;
use Illuminate\Support\Facades\{DB, Http, Log};

/** How orders come to be paid. */
class Orders
{
    const PRICE = 5000; // ours to say, never the browser's

    /** Asks the customer for the money. The order is stored by now, and its key with it. */
    public static function send(object $order): void
    {
        if ($order->collection_id || $order->status !== 'pending') return;
        $body = ['amount' => $order->amount, 'phone' => $order->phone, 'reference' => $order->id];
        try {
            $answer = self::service()->withHeader('Idempotency-Key', $order->id)->post('collections', $body);
        } catch (ConnectionException $broken) { // perhaps it arrived: poll() sends it again with the same key
            Log::warning("order {$order->id} is not sent yet: {$broken->getMessage()}");
            return;
        }
        if ($answer->status() === 202) self::change($order->id, ['collection_id' => $answer->json('id')]);
        elseif ($answer->json('error.type') === 'invalid_request_error') // a wrong number stays wrong
            self::end($order->id, $answer->json('error.message'));
        else Log::warning("order {$order->id} is not sent yet: {$answer->body()}");
    }

    /** Takes what a webhook or the poller brings: each event once, in any order. */
    public static function take(array $event): void
    {
        DB::transaction(function () use ($event) {
            $isNew = DB::table('events')->insertOrIgnore(['id' => $event['id']]) === 1;
            // An operator's endpoint.test is about no collection.
            if ($isNew && $event['data']['object'] === 'collection') self::settle($event['data']);
        });
    }

    /** Sends what a crash or a broken line left unsent, and fetches the events whose webhooks were lost. */
    public static function poll(): void
    {
        foreach (DB::table('orders')->where('status', 'pending')->whereNull('collection_id')->get() as $order)
            Carbon::parse($order->created_at)->gt(now()->subMinutes(15)) ? self::send($order) : self::lookFor($order);
        $polled = DB::table('polled')->value('until') ?? DB::table('orders')->min('created_at');
        $newest = Carbon::parse($polled ?? 'now');
        // An event can show up to 2 minutes behind the newest one, and clocks differ.
        $query = ['created_at[gte]' => $newest->copy()->subMinutes(10)->toISOString(), 'limit' => 100];
        do {
            $page = self::service()->get('events', $query)->throw()->json();
            foreach ($page['data'] as $event) {
                self::take($event);
                $newest = $newest->max($event['created_at']);
                $query['starting_after'] = $event['id'];
            }
        } while ($page['has_more']);
        DB::table('polled')->updateOrInsert(['id' => 1], ['until' => $newest->toISOString()]);
    }

    private static function settle(array $payment): void
    {
        if ($payment['status'] !== 'succeeded') {
            self::end($payment['reference'], $payment['failure_message'] ?? 'Nobody approved in time.');
            return;
        }
        $change = ['status' => 'paid', 'note' => '', 'collection_id' => $payment['id']];
        if ($payment['late'] ?? false) // they may have bought again, or have left: nothing is shipped or forgotten
            $change = ['status' => 'held', 'note' => 'Paid after it had ended: deliver, or give it back.'] + $change;
        if (self::change($payment['reference'], $change) === 0)
            Log::error("{$payment['id']} was paid for no order: {$payment['reference']}");
    }

    /** Money has the last word: what was paid never becomes unpaid. */
    private static function end(string $id, string $note): void
    {
        $pending = DB::table('orders')->where('id', $id)->where('status', 'pending');
        $pending->update(['status' => 'unpaid', 'note' => $note]);
    }

    /** Who ordered long ago expects no prompt any more. But perhaps only the answer was lost. */
    private static function lookFor(object $order): void
    {
        $made = self::service()->get('collections', ['reference' => $order->id])->throw()->json('data.0.id');
        if ($made) self::change($order->id, ['collection_id' => $made]);
        else self::end($order->id, 'The payment could not be asked for.');
    }

    private static function change(string $id, array $values): int
    {
        return DB::table('orders')->where('id', $id)->update($values);
    }

    private static function service(): PendingRequest
    {
        $service = Http::baseUrl(config('kusanya.base_url').'/v1')->withToken(config('kusanya.api_key'));
        return $service->timeout(5)->withoutRedirecting();
    }
}
