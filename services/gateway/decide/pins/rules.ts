/** docs/spec/crds.md, `toolPins`, as the registry of the pass carries it: what an MCPServer and the ToolPolicies say, the stricter winning. */
export interface PinRules {
  readonly mode: 'learn' | 'enforce'
  /** What happens in mode `enforce` to a tool that differs from every pin. */
  readonly onChange: 'hide' | 'approve' | 'alert'
  /** Lets tools without a pin through in mode `enforce`. */
  readonly allowUnpinned: boolean
  /** Digests by tool name; any of them is right. */
  readonly pins: ReadonlyMap<string, ReadonlySet<string>>
}

/** How a tool stands: as pinned, different from every pin, or without a pin. */
export type Standing = 'pinned' | 'drifted' | 'unpinned'

/** What becomes of a tool. */
export type PinDecision = 'pass' | 'approve' | 'refuse'

export function treatment(rules: PinRules, standing: Standing): PinDecision {
  if (rules.mode === 'learn' || standing === 'pinned') return 'pass'
  if (standing === 'unpinned') return rules.allowUnpinned ? 'pass' : 'refuse'
  return rules.onChange === 'alert' ? 'pass' : rules.onChange === 'approve' ? 'approve' : 'refuse'
}
