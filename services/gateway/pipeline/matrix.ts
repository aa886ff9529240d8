import type { Operation } from '../call/index.ts'
import type { StepName } from './stage.ts'

/** The request-side stages in the order in which they run. `revoked` and `resolve` run in every row. */
export const requestOrder = [
  'revoked',
  'resolve',
  'pins',
  'taints',
  'policy',
  'offline',
  'redact',
  'guard',
  'approval',
  'reserve',
] as const satisfies readonly StepName[]

/** Stages that run for every operation. */
export const everywhere: ReadonlySet<StepName> = new Set<StepName>(['revoked', 'resolve'])

/** Stages and reviews that the pipeline runs for one operation. */
export interface Row {
  /** The protocol's methods that are this operation. */
  readonly covers: string
  /** Stages that judge the request, in addition to those that run for every operation. */
  readonly stages: readonly StepName[]
  /** Stages that judge each entry of the response instead of the request. */
  readonly filters: readonly StepName[]
  /** Reviews of the response, in the order in which each frame passes them. */
  readonly reviews: readonly StepName[]
  /** `full`: every call leaves a record; `denials`: only those that were refused or failed, whose responses name their record, or had hits of DLP. */
  readonly record: 'full' | 'denials'
  /** The call may last for hours: it always has an intent, and it is rechecked for each frame and when the snapshot changes. */
  readonly long: boolean
  /** The record names the parent call, to which this one belongs. */
  readonly parent: boolean
  readonly reply: 'frames' | 'tunnel'
  /** Permitted callers, or a condition that does not fit in a cell. */
  readonly note: string
}

export type Matrix = Readonly<Partial<Record<Operation, Row>>>

/** A row without steps: the defaults of every row. */
export const emptyRow = {
  stages: [],
  filters: [],
  reviews: [],
  record: 'full',
  long: false,
  parent: false,
  reply: 'frames',
  note: '',
} as const satisfies Omit<Row, 'covers'>

/** The stage matrix. An operation without a row is refused. */
export const matrix = {
  'mcp.call': {
    ...emptyRow,
    covers: 'tools/call',
    stages: ['pins', 'taints', 'policy', 'offline', 'redact', 'guard', 'approval', 'reserve'],
    reviews: ['redact', 'guard', 'bind', 'mark', 'meter'],
    parent: true,
    note: 'bind: a task that the call created; parent: the round before, where there is one',
  },
  'mcp.list': {
    ...emptyRow,
    covers: 'lists, server/discover',
    filters: ['taints', 'policy'],
    reviews: ['pins', 'policy', 'redact', 'guard', 'bind', 'mark'],
    note: 'bind: `tasks/list` has only tasks of the session; pins: the definitions as the server gives them; redact, guard, mark: descriptions and instructions',
  },
  'mcp.get': {
    ...emptyRow,
    covers: 'resources/read, prompts/get, completion/complete',
    stages: ['taints', 'policy', 'offline', 'redact', 'guard', 'approval', 'reserve'],
    reviews: ['redact', 'guard', 'mark', 'meter'],
    parent: true,
    note: 'policy: by method and name; parent: the round before, where there is one',
  },
  'mcp.control': {
    ...emptyRow,
    covers: 'initialize, ping, notifications, DELETE, logging/setLevel',
    reviews: ['redact', 'guard', 'mark'],
    record: 'denials',
    note: 'redact, guard, mark: instructions of `initialize`',
  },
  'mcp.answer': {
    ...emptyRow,
    covers: "a posted answer to a server's request",
    stages: ['taints', 'policy', 'redact', 'guard'],
    parent: true,
    note: "taints, policy: the parent's",
  },
  'mcp.task': {
    ...emptyRow,
    covers: 'tasks/get, tasks/result, tasks/update, tasks/cancel',
    stages: ['taints', 'policy', 'redact', 'guard'],
    reviews: ['redact', 'guard', 'bind', 'mark'],
    parent: true,
    note: 'the session that created the task only; taints, policy: those of the call that created it',
  },
  'mcp.listen': {
    ...emptyRow,
    covers: 'GET, subscriptions/listen',
    reviews: ['redact', 'guard', 'bind', 'mark'],
    long: true,
    note: 'its frames are governed one by one',
  },
  'mcp.all': {
    ...emptyRow,
    covers: 'at `/mcp`: lists, handshakes, notifications, DELETE',
    record: 'denials',
    note: 'each request to a server is a separate call with its row',
  },
  'mcp.streams': {
    ...emptyRow,
    covers: 'GET at `/mcp`',
    long: true,
    note: 'the stream of each server is a separate call with its row',
  },
  'model.generate': {
    ...emptyRow,
    covers: 'chat/completions, completions, responses, messages',
    stages: ['taints', 'policy', 'offline', 'redact', 'guard', 'approval', 'reserve'],
    reviews: ['redact', 'guard', 'bind', 'mark', 'meter'],
    note: 'taints, policy: if `modelPolicy` is `policy`; bind: what the provider stores; mark: where provider-hosted tools may run',
  },
  'model.embed': {
    ...emptyRow,
    covers: 'embeddings',
    stages: ['taints', 'policy', 'redact', 'guard', 'reserve'],
    reviews: ['meter'],
    note: 'taints, policy: if `modelPolicy` is `policy`',
  },
  'model.image': {
    ...emptyRow,
    covers: 'images/generations, images/edits',
    stages: ['taints', 'policy', 'offline', 'redact', 'guard', 'approval', 'reserve'],
    reviews: ['redact', 'guard', 'mark', 'meter'],
    note: 'taints, policy: if `modelPolicy` is `policy`; redact: not the images',
  },
  'model.audio': {
    ...emptyRow,
    covers: 'audio/speech, audio/transcriptions, audio/translations',
    stages: ['taints', 'policy', 'offline', 'redact', 'guard', 'approval', 'reserve'],
    reviews: ['redact', 'guard', 'mark', 'meter'],
    note: 'taints, policy: if `modelPolicy` is `policy`; redact: not the sound',
  },
  'model.file': {
    ...emptyRow,
    covers: 'files, files/<id>, files/<id>/content',
    stages: ['taints', 'policy', 'offline', 'redact', 'guard', 'approval', 'reserve'],
    reviews: ['redact', 'guard', 'bind', 'mark'],
    note: 'owner of the file only; lists have only own files; taints, policy: if `modelPolicy` is `policy`; redact: not the files',
  },
  'model.batch': {
    ...emptyRow,
    covers: 'batches, messages/batches: created, listed, read, cancelled, deleted; results',
    stages: ['taints', 'policy', 'offline', 'redact', 'guard', 'approval', 'reserve'],
    reviews: ['bind', 'redact', 'guard', 'mark'],
    note: 'owner of the batch only; taints, policy: if `modelPolicy` is `policy`; reserve: the most that all its requests can cost, until the results are known',
  },
  'model.line': {
    ...emptyRow,
    covers: 'one request of a batch, judged when the file is uploaded and when the batch is created',
    stages: ['taints', 'policy', 'offline', 'redact', 'guard', 'reserve'],
    record: 'denials',
    parent: true,
    note: 'what would need an approval is denied; reserve: computed only, and held for the whole batch',
  },
  'model.info': {
    ...emptyRow,
    covers: 'models, messages/count_tokens',
    stages: ['redact', 'guard'],
    record: 'denials',
    note: 'redact, guard: count_tokens only',
  },
  'a2a.send': {
    ...emptyRow,
    covers: 'SendMessage, SendStreamingMessage',
    stages: ['taints', 'policy', 'offline', 'redact', 'guard', 'approval', 'reserve'],
    reviews: ['redact', 'guard', 'bind', 'mark', 'meter'],
    note: 'policy: by skill',
  },
  'a2a.follow': {
    ...emptyRow,
    covers: 'SubscribeToTask',
    reviews: ['redact', 'guard', 'mark'],
    long: true,
    parent: true,
    note: 'owner of the task only',
  },
  'a2a.task': {
    ...emptyRow,
    covers: 'GetTask, ListTasks, CancelTask, push notification configurations',
    stages: ['taints', 'policy'],
    reviews: ['redact', 'guard', 'mark'],
    parent: true,
    note: 'owner of the task only; policy: by method; lists are filtered',
  },
  'a2a.card': {
    ...emptyRow,
    covers: 'agent cards',
    record: 'denials',
    note: 'without identity where `publicCards` says so',
  },
  exec: {
    ...emptyRow,
    covers: 'code execution',
    stages: ['taints', 'policy', 'offline', 'redact', 'guard', 'approval', 'reserve'],
    reviews: ['redact', 'guard', 'mark', 'meter'],
    long: true,
    note: 'owner of the sandbox only; policy: server `plat-exec`',
  },
  tunnel: {
    ...emptyRow,
    covers: 'CONNECT',
    stages: ['taints', 'policy', 'reserve'],
    reviews: ['mark', 'meter'],
    long: true,
    reply: 'tunnel',
    note: 'no DPoP at CONNECT; policy: the host as tool',
  },
  infra: {
    ...emptyRow,
    covers: 'infrastructure plans: judged, let through, verified',
    stages: ['taints', 'policy', 'offline', 'approval', 'reserve'],
    note: 'policy: server `plat-infra`, tool `plan`, `apply` or `verify`',
  },
} as const satisfies Record<Operation, Row>

/**
 * The matrix for `modelPolicy` `scope-only` (docs/spec/gateway.md): the scope of the token permits model calls, and policies are not evaluated.
 */
export const scopeOnlyModels: Matrix = {
  ...matrix,
  'model.generate': withoutPolicy(matrix['model.generate']),
  'model.embed': withoutPolicy(matrix['model.embed']),
  'model.image': withoutPolicy(matrix['model.image']),
  'model.audio': withoutPolicy(matrix['model.audio']),
  'model.file': withoutPolicy(matrix['model.file']),
  'model.batch': withoutPolicy(matrix['model.batch']),
  'model.line': withoutPolicy(matrix['model.line']),
}

function withoutPolicy(row: Row): Row {
  return { ...row, stages: row.stages.filter((name) => name !== 'taints' && name !== 'policy') }
}
