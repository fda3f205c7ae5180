<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Support\Facades\Schema;

return new class extends Migration
{
    public function up(): void
    {
        Schema::create('orders', function (Blueprint $table) {
            $table->string('id', 36)->primary(); // also the idempotency key and the reference of its payment
            $table->string('phone', 30);
            $table->unsignedInteger('amount'); // whole shillings: 5000 is TZS 5,000
            $table->string('status')->default('pending'); // then paid, unpaid, or held for a person
            $table->string('collection_id')->nullable()->unique();
            $table->text('note')->default('');
            $table->timestamp('created_at')->useCurrent();
        });
        Schema::create('events', fn (Blueprint $table) => $table->string('id')->primary());
        Schema::create('polled', function (Blueprint $table) {
            $table->id();
            $table->string('until');
        });
    }
};
