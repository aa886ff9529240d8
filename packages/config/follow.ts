import { type Clock, reasonOf } from '@plat/core'
import { type FileWatch, watchFile } from './watch.ts'

/** Why the content of a file is refused, one line each. */
export interface RefusedContent {
  readonly problems: readonly string[]
}

/** For files that must exist. */
export const missingFile: RefusedContent = { problems: ['no such file'] }

export interface FollowOptions<C extends object> {
  readonly path: string
  readonly everySeconds: number
  readonly clock: Clock
  /** Returns the content or why it is refused. `bytes` is null while there is no such file. */
  readonly decode: (bytes: Uint8Array | null) => C | RefusedContent | Promise<C | RefusedContent>
  /** Called with each accepted content. */
  readonly publish: (content: C) => void | Promise<void>
  /** Called when the content is refused or cannot be read; what was published before remains in force. */
  readonly refuse: (problems: readonly string[]) => void
}

/** Follows a configuration file by its content: each version is either published or refused. */
export function followFile<C extends object>(options: FollowOptions<C>): FileWatch {
  const { path, everySeconds, clock, decode, publish, refuse } = options
  return watchFile({
    path,
    everyMs: everySeconds * 1000,
    clock,
    async onBytes(bytes) {
      const content = await decode(bytes)
      if (isRefused(content)) refuse(content.problems)
      else await publish(content)
    },
    onError: (error) => refuse([reasonOf(error)]),
  })
}

function isRefused(content: object): content is RefusedContent {
  return 'problems' in content
}
