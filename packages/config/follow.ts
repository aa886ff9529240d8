import { type Clock, reasonOf } from '@plat/core'
import { type FileWatch, watchFile } from './watch.ts'

/** Why the content of a file is refused, one line each. */
export interface RefusedContent {
  readonly problems: readonly string[]
}

/** For files that must exist. */
export const missingFile: RefusedContent = { problems: ['no such file'] }

export interface FollowOptions<R extends object> {
  readonly path: string
  readonly everySeconds: number
  readonly clock: Clock
  /** Returns the content or why it is refused. `bytes` is null while there is no such file. */
  readonly decode: (bytes: Uint8Array | null) => R | Promise<R>
  /** Called with each accepted content. */
  readonly publish: (content: Exclude<R, RefusedContent>) => void | Promise<void>
  /** Called when the content is refused or cannot be read; what was published before remains in force. */
  readonly refuse: (problems: readonly string[]) => void
}

/** Follows a configuration file by its content: each version is either published or refused. */
export function followFile<R extends object>(options: FollowOptions<R>): FileWatch {
  const { path, everySeconds, clock, decode, publish, refuse } = options
  return watchFile({
    path,
    everyMs: everySeconds * 1000,
    clock,
    async onBytes(bytes) {
      const content = await decode(bytes)
      if (isAccepted(content)) await publish(content)
      else if ('problems' in content && Array.isArray(content.problems)) refuse(content.problems)
    },
    onError: (error) => refuse([reasonOf(error)]),
  })
}

function isAccepted<R extends object>(content: R): content is Exclude<R, RefusedContent> {
  return !('problems' in content)
}
