import { member } from '@plat/kubernetes'
import Type, { type Static, type TObject } from 'typebox'
import { type BuiltinTool, builtinTool, type Denial, type ToolCall, toolText } from '../../../call/index.ts'
import { ApiSession } from '../api.ts'
import { name, namespace } from '../arguments.ts'
import type { ClusterParts } from '../parts.ts'
import { type Change, deletingPod, restarting, scaling } from './changes.ts'

/** `mode` and `approval` of `k8sOps.writes`. */
export interface WritesConfig {
  /** `disabled`, `proposal` or `apply`. */
  readonly mode: string | number
  /** `required` or `policy`. */
  readonly approval: string | number
}

/** Maximum size of a changed object, in bytes. */
const MAX_OBJECT_BYTES = 4 * 1024 * 1024

const BY_A_PERSON = 'each change of the cluster needs an approval (k8sOps.writes.approval)'

/** Returns the tools for changes; none in mode `disabled`. */
export function createWriteTools(parts: ClusterParts, writes: WritesConfig): readonly BuiltinTool[] {
  if (writes.mode === 'disabled') return []
  const { reach, api } = parts
  const changing = new Changing(parts, writes)
  return [
    changing.tool({
      name: 'k8s_scale',
      title: 'Scale a workload',
      description: 'Sets the number of replicas.',
      inputSchema: Type.Object(
        {
          kind: Type.Enum(['Deployment', 'StatefulSet', 'ReplicaSet'], { description: 'Kind of the workload.' }),
          namespace,
          name,
          replicas: Type.Integer({ minimum: 0, description: 'Number of replicas.' }),
        },
        { additionalProperties: false },
      ),
      fault: ({ replicas }) => reach.replicasFault(replicas),
      change: (args) => scaling(args, args.replicas),
    }),
    changing.tool({
      name: 'k8s_restart',
      title: 'Restart a workload',
      description: 'Replaces the pods of a workload one by one, as `kubectl rollout restart` does.',
      inputSchema: Type.Object(
        {
          kind: Type.Enum(['Deployment', 'StatefulSet', 'DaemonSet'], { description: 'Kind of the workload.' }),
          namespace,
          name,
        },
        { additionalProperties: false },
      ),
      change: (args) => restarting(args, api.clock.now()),
    }),
    changing.tool({
      name: 'k8s_delete_pod',
      title: 'Delete a pod',
      description: 'Deletes one pod; its workload, if any, creates another.',
      inputSchema: Type.Object({ namespace, name }, { additionalProperties: false }),
      change: deletingPod,
    }),
  ]
}

interface ChangeTool<Schema extends TObject> {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: Schema
  /** Returns why these arguments are refused in any namespace, or null. */
  fault?(args: Static<Schema>): Denial | null
  change(args: Static<Schema>): Change
}

class Changing {
  readonly #parts: ClusterParts
  readonly #writes: WritesConfig

  constructor(parts: ClusterParts, writes: WritesConfig) {
    this.#parts = parts
    this.#writes = writes
  }

  tool<Schema extends TObject>({ description, fault, change, ...definition }: ChangeTool<Schema>): BuiltinTool {
    const { mode, approval } = this.#writes
    const applies = mode === 'apply'
    const how = applies ? '' : ' Changes nothing: the response describes the change for a person to make.'
    return builtinTool({
      ...definition,
      description: description + how,
      annotations: { readOnlyHint: !applies, openWorldHint: true, destructiveHint: applies, idempotentHint: false },
      judge: (args) => this.#parts.reach.writeFault(placeOf(args)) ?? fault?.(args) ?? null,
      requirements(args) {
        if (!applies || approval === 'policy') return null
        return { approval: BY_A_PERSON, presentedArguments: change(args).summary, holds: [] }
      },
      run: (args, call) => (applies ? this.#apply(change(args), call) : this.#propose(change(args), call)),
    })
  }

  async #apply({ request, summary }: Change, call: ToolCall): ReturnType<BuiltinTool['run']> {
    const session = new ApiSession(this.#parts.api, call)
    const answer = await session.object({ ...request, maxBytes: MAX_OBJECT_BYTES })
    return answer.kind === 'refused'
      ? answer.answer
      : toolText(JSON.stringify({ done: summary, now: stateOf(answer.value) }), session.attempts)
  }

  /** Only reads: a proposal needs no permission to change anything. */
  async #propose({ request: { method, path, patch }, summary, kubectl }: Change, call: ToolCall) {
    const session = new ApiSession(this.#parts.api, call)
    const answer = await session.object({ path, maxBytes: MAX_OBJECT_BYTES })
    if (answer.kind === 'refused') return answer.answer
    const proposal = { method, path, ...(patch !== undefined && { patch }), kubectl }
    const proposed = { proposed: summary, changed: false, now: stateOf(answer.value), proposal }
    return toolText(JSON.stringify(proposed), session.attempts)
  }
}

function stateOf(object: Readonly<Record<string, unknown>>): object {
  const { generation, resourceVersion, deletionTimestamp } = member(object, 'metadata')
  const { replicas } = member(object, 'spec')
  const { phase } = member(object, 'status')
  return { replicas, phase, generation, resourceVersion, deletionTimestamp }
}

/** All schemas above have this member. */
function placeOf(args: object): string {
  return 'namespace' in args && typeof args.namespace === 'string' ? args.namespace : ''
}
