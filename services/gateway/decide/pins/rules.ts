/**
 * docs/spec/crds.md, `toolPins`, as in the registry of the pass: the rules of the MCPServer and its ToolPolicies, where the stricter one
 * wins.
 */
export interface PinRules {
  readonly mode: 'learn' | 'enforce'
  /** Treatment in mode `enforce` of a tool that differs from every pin. */
  readonly onChange: 'hide' | 'approve' | 'alert'
  /** Admits tools without a pin in mode `enforce`. */
  readonly allowUnpinned: boolean
  /** Accepted digests by tool name. */
  readonly pins: ReadonlyMap<string, ReadonlySet<string>>
}

/** Whether a tool matches a pin, differs from all, or has none. */
export type Standing = 'pinned' | 'drifted' | 'unpinned'

/** Treatment of a tool. */
export type PinDecision = 'pass' | 'approve' | 'refuse'

/** A definition that a person rejected is refused in every mode, unless it is pinned. */
export function pinDecision(rules: PinRules, standing: Standing, isRejected: boolean): PinDecision {
  if (isRejected && standing !== 'pinned') return 'refuse'
  if (rules.mode === 'learn' || standing === 'pinned') return 'pass'
  if (standing === 'unpinned') return rules.allowUnpinned ? 'pass' : 'refuse'
  return rules.onChange === 'alert' ? 'pass' : rules.onChange === 'approve' ? 'approve' : 'refuse'
}
