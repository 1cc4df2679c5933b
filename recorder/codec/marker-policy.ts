// Decides from what one camera has sent so far whether the marker bit ends a picture.
//
// Some cameras set the marker on every slice (iamscottxu/obs-rtspserver PR#199). To detect them, the next packet is awaited after
// the marker of the first pictures and of the first key pictures, before the access unit is emitted. If it has a further slice of
// the same picture, then from now on every picture ends with what follows it, one packet later. Otherwise markers are trusted and
// cause no delay.

/** Encoders that cut slices by size use one for a small picture and many for a key picture, so both are watched. */
const PICTURES_TO_WATCH = 3;
const KEY_PICTURES_TO_WATCH = 2;

export class MarkerPolicy {
  #pictures = 0;
  #keyPictures = 0;
  #perSlice = false;
  #seen = false;

  /** Every slice has a marker: it does not show the end of a picture. */
  get perSlice(): boolean {
    return this.#perSlice;
  }

  /** False for a camera that has never set a marker on a slice, such as FLIR M400. */
  get seen(): boolean {
    return this.#seen;
  }

  /** A slice has the marker; returns whether the picture may be emitted now, before the next packet. */
  isEnd(keyPicture: boolean): boolean {
    this.#seen = true;
    if (this.#perSlice || this.#pictures < PICTURES_TO_WATCH) return false;
    return !keyPicture || this.#keyPictures >= KEY_PICTURES_TO_WATCH;
  }

  noteEnd(keyPicture: boolean): void {
    if (this.#pictures < PICTURES_TO_WATCH) this.#pictures++;
    if (keyPicture && this.#keyPictures < KEY_PICTURES_TO_WATCH) this.#keyPictures++;
  }

  /** A further slice of the same picture followed a marker. */
  noteFurtherSlice(): void {
    this.#perSlice = true;
  }
}
