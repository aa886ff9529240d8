import { type CedarInput, type CedarValue, cedarCost, cedarFromJson } from '@plat/resources/cedar'
import { type PolicyInput, skillOf } from '../policy-input.ts'

/** Everything but the arguments, with the names used in `when`. */
type InputFacts = Omit<ReturnType<typeof engineInput>, 'now'>

function engineInput({ operation, method, identity, target, tool, taints, sinks, now }: PolicyInput) {
  return {
    operation,
    method,
    identity: {
      tenant: identity.tenant || null,
      namespace: identity.namespace,
      agent: identity.agent,
      session: identity.session,
      user: identity.user,
      groups: identity.groups,
      tier: identity.tier,
      scopes: [...identity.scopes],
      verified: identity.verified,
      chain: identity.chain,
    },
    target: {
      server: target.server,
      tool,
      skill: skillOf(tool),
      route: target.kind === 'model' ? target.key : null,
      model: target.kind === 'model' ? tool : null,
      dataClass: target.dataClass,
      trust: target.trust,
      jurisdiction: target.jurisdiction,
    },
    taints,
    sinks,
    now: new Date(now).toISOString(),
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Returns the request body `{"input": …}` for JSON engines. The arguments are inserted as the caller wrote them, so that no number
 * changes; `args` is absent if unknown. Throws TypeError if the arguments are not UTF-8.
 */
export function inputJson(input: PolicyInput): string {
  const rest = JSON.stringify(engineInput(input))
  const { args } = input
  const { inputs, meta } = besideOf(input)
  const members = [
    ...(args === 'unknown' ? [] : [`"args":${args === null ? 'null' : utf8.decode(args)}`]),
    ...(inputs === null ? [] : [`"inputResponses":${utf8.decode(inputs)}`]),
    ...(meta === null ? [] : [`"meta":${utf8.decode(meta)}`]),
  ]
  return `{"input":${[rest.slice(0, -1), ...members].join()}}}`
}

/** Content forwarded with the arguments, as the caller wrote it. */
function besideOf({ beside = {} }: PolicyInput): {
  readonly inputs: Uint8Array | null
  readonly meta: Uint8Array | null
} {
  return beside === 'unknown'
    ? { inputs: null, meta: null }
    : { inputs: beside.inputs ?? null, meta: beside.meta ?? null }
}

/** Returns the single request for all tools of a list: `target.tool` is null, and `tools` names them. */
export function listInputJson(input: PolicyInput, tools: readonly string[]): string {
  return JSON.stringify({ input: { ...engineInput(input), tools } })
}

/**
 * Returns the request for Cedar: principal `Agent::"<ns>/<agent>"`, action `Action::"<operation>"`, resource `Tool::"<server>/<tool>"`
 * (`Tool::"<server>"` without a tool), the rest as context. Cedar has no null: unknown values are absent. Throws SyntaxError or
 * TypeError if Cedar cannot represent the arguments.
 */
export function cedarInput(input: PolicyInput): CedarInput {
  const { now, ...rest } = engineInput(input)
  const { identity, target, tool, operation } = input
  return {
    principal: `${identity.namespace}/${identity.agent}`,
    action: operation,
    resource: tool === null ? target.server : `${target.server}/${tool}`,
    context: {
      ...contextOf(rest),
      now: { __extn: { fn: 'datetime', arg: now } },
      ...(input.args instanceof Uint8Array && { args: cedarFromJson(input.args) }),
      ...besideContext(input),
    },
  }
}

/** Cost of the caller-controlled parts of a request, in units of `CostBudget`; see `cedarCost`. */
export function cedarQuestionCost(input: PolicyInput, most: number): number {
  const { inputs, meta } = besideOf(input)
  const parts = [input.args, inputs, meta].filter((part) => part instanceof Uint8Array)
  return parts.reduce((sum, part) => sum + cedarCost(part, most), 0)
}

function besideContext(input: PolicyInput): Record<string, CedarValue> {
  const { inputs, meta } = besideOf(input)
  return {
    ...(inputs !== null && { inputResponses: cedarFromJson(inputs) }),
    ...(meta !== null && { meta: cedarFromJson(meta) }),
  }
}

function contextOf({ operation, method, identity, target, taints, sinks }: InputFacts): Record<string, CedarValue> {
  return {
    operation,
    method,
    identity: known(identity),
    target: known(target),
    taints: [...taints],
    sinks: [...sinks],
  }
}

function known(members: Readonly<Record<string, string | readonly string[] | null>>): Record<string, CedarValue> {
  const out: Record<string, CedarValue> = {}
  for (const [name, value] of Object.entries(members)) {
    if (value !== null) out[name] = typeof value === 'string' ? value : [...value]
  }
  return out
}
