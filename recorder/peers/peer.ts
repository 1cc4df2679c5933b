// The answers of other members that are not the wanted ones.

/** The status of an answer that is not the wanted one, and why: in the words of its node, or in ours if it cannot be read. */
export interface Refusal {
  readonly status: number;
  readonly problem: string;
}

export type NoAnswer = { readonly kind: 'away' } | ({ readonly kind: 'refused' } & Refusal);
