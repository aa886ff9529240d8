/** Cases whose replies may differ between an agent and the gateway before it, with the reason. */
import type { Target } from './target.ts'

/** Codes that the protocol requires of an error. Agents that return others are not followed. */
const REQUIRED: readonly (readonly [title: RegExp, codes: readonly number[]])[] = [
  [/^error: (not JSON|empty)$/, [-32700]],
  [/^error: (an array|a batch|a text|.*version of JSON-RPC|no method|a method .*|an ID that is an object)$/, [-32600]],
  [/^error: an unknown method$/, [-32601]],
  [/^error: (parameters|no parameters|no message|a stream|parts|no parts|a part|an unknown role|an ID of)/, [-32602]],
  [/^get: (without an ID|an ID that is a number)$/, [-32602]],
  [/^extended card$/, [-32004, -32007]],
  [/^version: (none|unknown)$/, [-32009]],
  // JSON-RPC does not say whether other members of a request are an error.
  [/^unknown: members of the request$/, [-32001]],
]

/** Returns the codes that the protocol requires in a case; null if it is not an error. */
export function requiredCodes(title: string): readonly number[] | null {
  return REQUIRED.find(([pattern]) => pattern.test(title))?.[1] ?? null
}

/** Differences on purpose; docs/a2a.md describes each. */
const ON_PURPOSE: Readonly<Record<string, string>> = {
  'send: to a task in another context': 'a context that the caller does not own does not exist for it',
  'list: of a context, in pages': 'totalSize is the number of the tasks on the page',
}

/** An agent, and the version in which it is called. */
export interface Pairing {
  readonly agent: 'python' | 'python-03' | 'typescript' | 'typescript-03'
  readonly version: Target['version']
}

/** Returns the reason why replies may differ; null if they may not. */
export function reasonToDiffer(title: string, { agent, version }: Pairing): string | null {
  const isTranslated = version === '0.3' && !agent.endsWith('-03')
  if (isTranslated && title.startsWith('push: create')) return 'webhooks of another version are refused'
  if (isTranslated && title.startsWith('stream: a task'))
    return 'the SDK converts defaults to members, and never ends a stream that waits for input'
  if (agent === 'typescript-03' && title === 'get: without history')
    return 'no length and the length 0 mean the same in 0.3, but not in this SDK'
  return ON_PURPOSE[title] ?? null
}

/**
 * Returns true if an agent replies in a case. The agents in TypeScript do not read bodies and end streams with the SDK. A stream of the Python
 * SDK of 0.3 does not end when its task is cancelled.
 */
export function isReplying(title: string, { agent }: Pairing): boolean {
  if (agent === 'python-03') return title !== 'resubscribe: a task that works, to its end'
  if (!agent.startsWith('typescript')) return true
  return !/^error: |^resubscribe: (a completed|an unknown)|^version: (none|unknown|with)/.test(title)
}
