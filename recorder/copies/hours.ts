// The hours of a day in which copying is allowed.

/** Minutes after midnight by the clock of the system; over midnight if `to` is not after `from`. */
export interface Hours {
  readonly from: number;
  readonly to: number;
}

export function isWithin({ from, to }: Hours, wallMs: number): boolean {
  const date = new Date(wallMs);
  const minute = date.getHours() * 60 + date.getMinutes();
  return from < to ? minute >= from && minute < to : minute >= from || minute < to;
}
