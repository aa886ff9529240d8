import type { PolicyJson } from '@cedar-policy/cedar-wasm/nodejs'
import { isObject } from '@plat/core'

/** Context attributes with data of the caller. */
const CALLER_ATTRIBUTES: ReadonlySet<unknown> = new Set(['args', 'inputResponses', 'meta'])

/**
 * Returns policies for list entries, where these attributes are unknown: conditions of a `permit` on arguments count as true, and a `forbid` with
 * such a condition is omitted.
 */
export function forLists<P extends { readonly source: string | PolicyJson; readonly json: PolicyJson }>(
  policies: readonly P[],
): P[] {
  const remaining: P[] = []
  for (const policy of policies) {
    const { json } = policy
    const conditions = json.conditions.filter(({ body }) => !asksForArguments(body))
    if (conditions.length === json.conditions.length) remaining.push(policy)
    else if (json.effect === 'permit') remaining.push({ ...policy, source: { ...json, conditions } })
  }
  return remaining
}

/** Returns whether an expression refers to one of them, or to the whole context, which contains them. */
function asksForArguments(node: unknown): boolean {
  if (Array.isArray(node)) return node.some(asksForArguments)
  if (!isObject(node)) return false
  const access = node['.'] ?? node.has
  if (isObject(access) && isContext(access.left)) {
    const attribute = Array.isArray(access.attr) ? access.attr[0] : access.attr
    return CALLER_ATTRIBUTES.has(attribute)
  }
  return isContext(node) || Object.values(node).some(asksForArguments)
}

function isContext(node: unknown): boolean {
  return isObject(node) && node.Var === 'context'
}
