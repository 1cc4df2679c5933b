// The bytes of media that a process may hold at once, shared by all that hold some. When they run short, the users that are
// missed least give way first; recording gives way to nothing.

import { assert } from './assert.ts';

export interface MemoryUse {
  /** Of this user alone. */
  readonly maxBytes: number;
  /** As much it has whatever the others hold. */
  readonly minBytes?: number;
  /** Lets go of `bytes`, at once and as far as it can, because it or one named after it has no room left. */
  readonly shed?: (bytes: number) => void;
}

export class MemoryBudget {
  readonly limitBytes: number;
  readonly #accounts: MemoryAccount[] = [];
  #usedBytes = 0;

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** In the order in which they give way. */
  get accounts(): readonly MemoryAccount[] {
    return this.#accounts;
  }

  /** A user that gives way before all that are opened later. */
  open(name: string, use: MemoryUse): MemoryAccount {
    assert(!this.#accounts.some((account) => account.name === name), 'two users of memory have one name');
    const account = new MemoryAccount(name, use, {
      use: (bytes) => (this.#usedBytes += bytes),
      makeRoom: (bytes) => this.#makeRoom(account, bytes),
    });
    this.#accounts.push(account);
    return account;
  }

  /** Whether `bytes` fit now, after those that give way before `account`, and then itself, were asked to. */
  #makeRoom(account: MemoryAccount, bytes: number): boolean {
    const ownExcess = (): number => account.usedBytes + bytes - account.maxBytes;
    const excess = (): number => this.#usedBytes + bytes - this.limitBytes;
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
  makeRoom(bytes: number): boolean;
}

/** What one user of a budget holds. */
export class MemoryAccount {
  readonly name: string;
  readonly maxBytes: number;
  readonly minBytes: number;
  readonly #shed: (bytes: number) => void;
  readonly #owner: Owner;
  #usedBytes = 0;
  #isShedding = false;
  readonly #waiting: { readonly bytes: number; readonly taken: () => void }[] = [];
  /** How often it was asked to let go of something that it had, and how often it was refused. */
  sheds = 0;
  refusals = 0;

  constructor(name: string, { maxBytes, minBytes = 0, shed = () => {} }: MemoryUse, owner: Owner) {
    this.name = name;
    this.maxBytes = maxBytes;
    this.minBytes = minBytes;
    this.#shed = shed;
    this.#owner = owner;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** False: there is no room, and nothing was taken. What is taken when the user holds nothing always has room. */
  take(bytes: number): boolean {
    if (bytes > 0 && !this.#owner.makeRoom(bytes) && this.#usedBytes > 0) {
      this.refusals++;
      return false;
    }
    this.#add(bytes);
    return true;
  }

  /** From now on it holds so much in all, in any case: others have so much less. */
  hold(bytes: number): void {
    this.#add(bytes - this.#usedBytes);
  }

  /** Resolves when `bytes` were taken, in order of asking: for work that can wait. */
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
    assert(bytes <= this.#usedBytes, 'more memory is given back than was taken');
    this.#add(-bytes);
    // A caller that is refused waits until this user gives something back.
    for (let first = this.#waiting[0]; first && this.take(first.bytes); first = this.#waiting[0]) {
      this.#waiting.shift();
      first.taken();
    }
  }

  /** For the budget. */
  shed(bytes: number): void {
    if (this.#usedBytes === 0 || this.#isShedding) return;
    const before = this.#usedBytes;
    // What is let go of may make the user take again.
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

/** For a test or a tool that has no budget. */
export const unlimitedMemory = (name: string): MemoryAccount =>
  new MemoryBudget(Infinity).open(name, { maxBytes: Infinity });
