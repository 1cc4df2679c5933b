// A shared limit on the bytes of media that the process holds at once. When it is reached, the less important users release
// memory first; recording comes last.

import { assert } from './assert.ts';

interface MemoryUse {
  /** Limit of this user alone. */
  readonly maxBytes: number;
  /** Bytes that this user may always hold, whatever the others hold. */
  readonly minBytes?: number;
  /** Releases up to `bytes` at once. Called when this user, or one opened later, has no space left. */
  readonly shed?: (bytes: number) => void;
  /** What it holds is not in the blocks that `MemoryBudget.inBlocks` counts. */
  readonly isApart?: boolean;
}

export class MemoryBudget {
  readonly limitBytes: number;
  readonly #accounts: MemoryAccount[] = [];
  /** Bytes of all media in memory: some cannot be refused, and others wait in parts of the program that count none. */
  inBlocks: () => number = () => 0;
  #countedBytes = 0;
  #apartBytes = 0;

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
  }

  get usedBytes(): number {
    return Math.max(this.#countedBytes, this.inBlocks()) + this.#apartBytes;
  }

  /** In the order in which they give way. */
  get accounts(): readonly MemoryAccount[] {
    return this.#accounts;
  }

  /** Opens an account that gives way before all accounts opened later. */
  open(name: string, use: MemoryUse): MemoryAccount {
    assert(!this.#accounts.some((account) => account.name === name), 'two accounts of memory have the same name');
    const account = new MemoryAccount(name, use, {
      use: (bytes) => void (use.isApart ? (this.#apartBytes += bytes) : (this.#countedBytes += bytes)),
      makeSpace: (bytes) => this.#makeSpace(account, bytes),
    });
    this.#accounts.push(account);
    return account;
  }

  /**
   * Whether `bytes` fit, after asking first the accounts that give way before `account` and then `account` itself to release
   * memory.
   */
  #makeSpace(account: MemoryAccount, bytes: number): boolean {
    const ownExcess = (): number => account.usedBytes + bytes - account.maxBytes;
    // What is in blocks already takes no more of them.
    const counted = account.isApart ? 0 : bytes;
    const excess = (): number =>
      Math.max(this.#countedBytes + counted, this.inBlocks()) + this.#apartBytes + bytes - counted - this.limitBytes;
    if (ownExcess() <= 0 && excess() <= 0) return true;
    if (ownExcess() > 0) account.shed(ownExcess());
    for (const other of this.#accounts) {
      if (excess() <= 0) break;
      other.shed(excess());
      if (other === account) break;
    }
    return ownExcess() <= 0 && (excess() <= 0 || account.usedBytes + bytes <= account.minBytes);
  }
}

interface Owner {
  use(bytes: number): void;
  makeSpace(bytes: number): boolean;
}

/** What one user of the budget holds. */
export class MemoryAccount {
  readonly name: string;
  readonly maxBytes: number;
  readonly minBytes: number;
  readonly isApart: boolean;
  readonly #shed: (bytes: number) => void;
  readonly #owner: Owner;
  #usedBytes = 0;
  #isShedding = false;
  readonly #waiting: { readonly bytes: number; readonly taken: () => void }[] = [];
  /** How often this user was asked to release memory while it held some, and how often it was refused some. */
  sheds = 0;
  refusals = 0;

  constructor(name: string, { maxBytes, minBytes = 0, shed = () => {}, isApart = false }: MemoryUse, owner: Owner) {
    this.name = name;
    this.maxBytes = maxBytes;
    this.minBytes = minBytes;
    this.isApart = isApart;
    this.#shed = shed;
    this.#owner = owner;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Takes `bytes`. False: there is no space and nothing was taken. A user that holds nothing always gets what it asks for. */
  take(bytes: number): boolean {
    if (bytes > 0 && !this.#owner.makeSpace(bytes) && this.#usedBytes > 0) {
      this.refusals++;
      return false;
    }
    this.#add(bytes);
    return true;
  }

  /** Sets what this user holds in all, even beyond the limit; the others have that much less. */
  hold(bytes: number): void {
    this.#add(bytes - this.#usedBytes);
  }

  /** Takes `bytes` once there is space, in order of the calls: for work that can wait. */
  async taken(bytes: number): Promise<void> {
    if (this.#waiting.length > 0 || !this.take(bytes)) {
      await new Promise<void>((taken) => this.#waiting.push({ bytes, taken }));
    }
  }

  /** Runs `work` with `bytes` taken. */
  async during<T>(bytes: number, work: () => Promise<T>): Promise<T> {
    await this.taken(bytes);
    try {
      return await work();
    } finally {
      this.giveBack(bytes);
    }
  }

  giveBack(bytes: number): void {
    assert(bytes <= this.#usedBytes, 'more memory is released than was taken');
    this.#add(-bytes);
    // Serve the waiting callers in order. Only this user giving memory back serves them, not others doing so.
    for (let first = this.#waiting[0]; first && this.take(first.bytes); first = this.#waiting[0]) {
      this.#waiting.shift();
      first.taken();
    }
  }

  /** Called by the budget. */
  shed(bytes: number): void {
    if (this.#usedBytes === 0 || this.#isShedding) return;
    const before = this.#usedBytes;
    // Releasing memory may make the user take some again.
    this.#isShedding = true;
    try {
      this.#shed(bytes);
    } finally {
      this.#isShedding = false;
    }
    if (this.#usedBytes < before) this.sheds++;
  }

  #add(bytes: number): void {
    this.#usedBytes += bytes;
    this.#owner.use(bytes);
  }
}

/** An account without a limit, for tests and tools that have no budget. */
export const unlimitedMemory = (name: string): MemoryAccount =>
  new MemoryBudget(Infinity).open(name, { maxBytes: Infinity });
