import Type from 'typebox'
import { AdminError, type AdminRoutes, bodyAs, parameter } from '../../admin/index.ts'
import { EngineError, type SavedContext } from './engine.ts'

/** Body of a checkpoint and of a restore: the name of the checkpoint. */
export const checkpointSchema = Type.Object(
  { name: Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$' }) },
  { additionalProperties: false },
)

/** A session by its names. */
interface SessionNames {
  readonly namespace: string
  readonly agent: string
  readonly session: string
}

export interface ContextRoutesOptions {
  /** `ctxengine.checkpointDir`; empty for none. */
  readonly dir: string
  /** Has the engine save or load the contexts of a session; null: it has none. Throws EngineError. */
  readonly move: (action: 'save' | 'load', session: SessionNames, path: string) => Promise<SavedContext | null>
  /** Records it. */
  readonly record: (action: string, by: string, session: SessionNames, saved: SavedContext) => Promise<void>
}

/** `/v1/contexts`: checkpoints of the contexts of sessions. */
export function createContextRoutes({ dir, move, record }: ContextRoutesOptions): AdminRoutes {
  return {
    mount(context) {
      for (const [route, action] of [
        ['POST /v1/contexts/:id/checkpoint', 'save'],
        ['POST /v1/contexts/:id/restore', 'load'],
      ] as const) {
        context.on(route, async ({ params, body }, _reply, caller) => {
          const session = namesOf(parameter(params, 'id'))
          caller.demand(session.namespace)
          const { name } = bodyAs(checkpointSchema, body)
          if (dir === '') throw new AdminError('conflict', 'ctxengine.checkpointDir is not set')
          const saved = await move(action, session, `${dir}/${fileOf(session)}.${name}.context`).catch(failed)
          if (saved === null) throw new AdminError('not_found', 'this session has no context')
          await record(`context.${action === 'save' ? 'checkpoint' : 'restore'}`, caller.by, session, saved)
          return { name, ...saved }
        })
      }
    },
  }
}

function failed(error: unknown): never {
  if (!(error instanceof EngineError)) throw error
  if (error.status === 404) throw new AdminError('not_found', 'the engine does not have this context or checkpoint')
  throw new AdminError('upstream_error', error.message)
}

/** Names have neither slashes nor leading dots, so the file is in the folder. */
function fileOf({ namespace, agent, session }: SessionNames): string {
  return [namespace, agent, session].map((name) => encodeURIComponent(name).replaceAll('.', '%2E')).join('.')
}

function namesOf(id: string): SessionNames {
  const [namespace, agent, session, ...more] = id.split('/')
  if (!namespace || !agent || !session || more.length > 0) {
    throw new AdminError('invalid_request', 'id: must be <namespace>/<agent>/<session>')
  }
  return { namespace, agent, session }
}
