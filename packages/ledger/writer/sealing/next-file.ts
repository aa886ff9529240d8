import type { AppendHandle, AppendTarget } from '@plat/state'

type Done = (fault: Error | null, written: number) => void

/** The file after the one that is being sealed. A write waits until the file exists. */
export class NextFile implements AppendTarget {
  #handle: AppendHandle | null = null
  #fault: Error | null = null
  #waiting: { readonly bytes: Uint8Array; readonly done: Done } | null = null

  size(): number {
    return 0
  }

  append(bytes: Uint8Array, done: Done): void {
    if (this.#fault !== null) done(this.#fault, 0)
    else if (this.#handle !== null) this.#handle.append(bytes, done)
    else this.#waiting = { bytes, done }
  }

  /** Called when the file exists. */
  use(handle: AppendHandle): void {
    this.#handle = handle
    const waiting = this.#waiting
    this.#waiting = null
    if (waiting !== null) handle.append(waiting.bytes, waiting.done)
  }

  /** Called when there will be no file: fails every write. */
  fail(fault: Error): void {
    this.#fault = fault
    this.#waiting?.done(fault, 0)
    this.#waiting = null
  }
}
