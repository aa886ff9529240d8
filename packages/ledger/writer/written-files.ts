import type { AppendHandle, AppendTarget, Files, GroupCommit } from '@plat/state'
import type { Head } from '../format.ts'
import { NextFile } from './sealing/next-file.ts'
import { endsWith, sealFile } from './sealing/seal-file.ts'
import type { FileStart } from './sealing/sealer.ts'

export interface WrittenFilesOptions {
  readonly path: string
  readonly files: Files
  readonly handle: AppendHandle
  readonly start: FileStart
  readonly commitOn: (target: AppendTarget) => GroupCommit
  /** Called when a segment was sealed. */
  readonly onSealed?: () => void
}

interface ActiveFile {
  readonly handle: AppendHandle
  readonly commit: GroupCommit
  readonly start: FileStart
}

/** The file after the one that is being sealed. */
interface FollowingFile {
  readonly target: NextFile
  readonly commit: GroupCommit
  readonly start: FileStart
}

/** The files that the writer of a ledger writes to: the active one and, while that is being sealed, the one after it. */
export class WrittenFiles {
  readonly #options: WrittenFilesOptions
  #active: ActiveFile
  /** Not null between the `segment` record's place in the chain and its file's new name. */
  #following: FollowingFile | null = null
  /** Start of the next file, while the `segment` record is durable and its file has no new name yet. */
  #closing: FileStart | null = null

  constructor(options: WrittenFilesOptions) {
    const { handle, start, commitOn } = options
    this.#options = options
    this.#active = { handle, commit: commitOn(handle), start }
  }

  /** Commits records that get their place now. */
  get commit(): GroupCommit {
    return (this.#following ?? this.#active).commit
  }

  get start(): FileStart {
    return this.#active.start
  }

  /** Bytes of the active file up to the last acknowledged record. */
  get durableSize(): number {
    return this.#active.commit.durableSize
  }

  /** Returns whether the active file has its `segment` record, so that records get their place in the next one. */
  get isSealing(): boolean {
    return this.#following !== null
  }

  /** Returns `head`, the last durable record, if it is in the active file, else null. */
  lastIn(head: Head | null): Head | null {
    return head === null || head.seq < this.start.first ? null : head
  }

  /** Commits pending records of both files. */
  async flush(): Promise<void> {
    await Promise.all([this.#active.commit.flush(), this.#following?.commit.flush()])
  }

  close(): void {
    this.#active.handle.close()
  }

  /** Called when the `segment` record got its place. Later records go to the next file, which begins with `start`. */
  divert(start: FileStart): void {
    const target = new NextFile()
    this.#following = { target, commit: this.#options.commitOn(target), start }
  }

  /** Called when the `segment` record, `head`, is durable: goes on with the next file. When it throws, `reopen` completes it. */
  change(head: Head): void {
    const following = this.#following
    if (following === null) return
    this.#closing = following.start
    this.#useNext(head, { start: following.start, isRetry: false })
  }

  /** Called after a failure: closes the active file, and fails every record for the next one before their numbers are used again. */
  fail(fault: Error): void {
    this.#active.handle.close()
    const following = this.#following
    this.#following = null
    following?.target.fail(fault)
    following?.commit.fail(fault)
  }

  /** Goes on after a failure, with the next file if the active one was to get its new name. `head`: the last durable record. */
  reopen(head: Head | null): void {
    if (this.#closing === null) this.#reopenActive(this.lastIn(head))
    else if (head !== null) this.#useNext(head, { start: this.#closing, isRetry: true })
  }

  /** Gives the active file, which ends with `head`, its new name, and goes on with the next one. */
  #useNext(head: Head, { start, isRetry }: { readonly start: FileStart; readonly isRetry: boolean }): void {
    const { path, files, onSealed, commitOn } = this.#options
    const sealed = this.#active
    const following = this.#following
    const bytes = sealed.commit.durableSize
    const handle = sealFile({ path, files, first: sealed.start.first, bytes, head, isRetry })
    sealed.handle.close()
    this.#active = { handle, commit: following?.commit ?? commitOn(handle), start }
    this.#following = null
    this.#closing = null
    following?.target.use(handle)
    onSealed?.()
  }

  /** Cuts off bytes after `head`, the last acknowledged record in the file. */
  #reopenActive(head: Head | null): void {
    const { start, commit } = this.#active
    const handle = this.#options.files.openAppend(this.#options.path)
    // The old handle is closed already; a failure from here on closes this one.
    this.#active = { handle, commit, start }
    checkLastLine(handle, commit.durableSize, head)
    handle.truncate(commit.durableSize)
    this.#active = { handle, commit: this.#options.commitOn(handle), start }
  }
}

/** Throws unless the file's first `size` bytes end with record `head`. */
function checkLastLine(handle: AppendHandle, size: number, head: Head | null): void {
  if (handle.size() < size) throw new Error(`the file is shorter than the ${size} bytes that were acknowledged`)
  if (head === null) return
  if (!endsWith(handle, size, head)) {
    throw new Error(`the last acknowledged record, ${head.seq}, is no longer in the file`)
  }
}
