import { hash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { canonicalJson, isObject, losslessSteps, member, runInSlices } from '@plat/core'
import type { Call, Identity, Target, ToolPin } from '../../../call/index.ts'

/** The parts of a call that an approval is bound to. */
export type Bound = Pick<Call, 'operation' | 'method' | 'body'> & {
  readonly facts: { readonly identity: Identity; readonly target: Target; readonly pin: ToolPin | null }
}

/**
 * Returns the digest of an approval as hex SHA-256. It covers the session with its user, the tool and its server, the arguments, everything else of
 * the sender that is forwarded, and the rule. Numbers that no double represents exactly enter as source text, so arguments that differ
 * only beyond 2^53 never share an approval. `ruleSha256` covers the text of the rule and the name of its policy. Returns null if the
 * arguments have no canonical form (an escaped lone surrogate).
 */
export async function digestOf(call: Bound, ruleSha256: string | null): Promise<string | null> {
  const isLong = (call.body?.bytes.byteLength ?? 0) > LONG_BYTES
  const value = boundValue(call, ruleSha256, await boundArguments(call))
  if (isLong) await setImmediate()
  const text = textOf(value)
  if (text === null) return null
  if (isLong) await setImmediate()
  return hash('sha256', text, 'hex')
}

/** Longer messages are parsed, written and hashed in separate turns of the event loop. */
const LONG_BYTES = 64 * 1024

function boundValue(call: Bound, ruleSha256: string | null, args: unknown): unknown {
  const { identity, target, pin } = call.facts
  const { namespace, agent, session, issuer, user } = identity
  // In the order of the canonical form: the engine writes what is in order many times faster.
  return {
    arguments: args,
    // Undefined, and so absent, if only the arguments are forwarded.
    beside: call.body?.beside,
    definition: pin?.digest ?? null,
    rule: ruleSha256,
    session: `${namespace}/${agent}/${session}`,
    target: target.key,
    tenant: identity.tenant,
    tool: target.tool,
    // The name of a session may be used again, for a person who must not approve the call or who was not there when it was approved.
    user: [issuer, user],
  }
}

function textOf(value: unknown): string | null {
  try {
    return canonicalJson(value)
  } catch (error) {
    if (error instanceof TypeError) return null
    throw error
  }
}

/**
 * Returns the arguments, or method and parameters of an MCP message that names no tool and of an A2A message. Leaves out ids and `_meta`
 * entries of one transmission (such as a progress token), which differ in each retry.
 */
async function boundArguments({ operation, method, body }: Bound): Promise<unknown> {
  if (operation === 'mcp.get')
    return { method, params: withoutMeta(member(await parse(body?.bytes ?? null), 'params') ?? null) }
  if (operation === 'a2a.send')
    return { method, params: withoutMessageId(member(await parse(body?.bytes ?? null), 'params') ?? null) }
  return parse(body?.args ?? null)
}

async function parse(bytes: Uint8Array | null): Promise<unknown> {
  return bytes === null ? null : runInSlices(losslessSteps(bytes))
}

function withoutMeta(params: unknown): unknown {
  if (!isObject(params)) return params
  const { _meta: _, ...rest }: { _meta?: unknown } = params
  return rest
}

/** `message.messageId` of A2A identifies one transmission. */
function withoutMessageId(params: unknown): unknown {
  const message = member(params, 'message')
  if (!isObject(params) || !isObject(message)) return params
  const { messageId: _, ...rest }: { messageId?: unknown } = message
  return { ...params, message: rest }
}
