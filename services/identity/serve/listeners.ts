import { type HttpFault, type Listener, type ListenOptions, listen } from '@plat/http'
import type { FastifyInstance } from 'fastify'

/** Options in which the broker's listeners differ. */
export type Listening = Pick<ListenOptions, 'address' | 'raw' | 'api' | 'meter'>

/** Every fault at the HTTP level has the shape of broker-token endpoints (docs/spec/broker-api.md, "Errors"). */
export function brokerFault({ message }: HttpFault): { readonly error: string } {
  return { error: message }
}

/** Liveness alone: what the bootstrap address answers beside bootstrap (docs/spec/broker-api.md, "Endpoints"). */
export function mountLiveness(app: FastifyInstance): void {
  app.get('/healthz', (_request, reply) => reply.header('cache-control', 'no-store').send({ status: 'ok' }))
}

/** The broker's listeners, open. */
export interface Listeners {
  readonly api: Listener
  readonly bootstrap: Listener | null
  drain(timeoutMs: number): Promise<void>
  close(): Promise<void>
}

/** Opens the API's listener, and the other one when there is one. When one cannot be opened, none stays open. */
export async function openListeners(
  common: Omit<ListenOptions, keyof Listening>,
  requested: { readonly api: Listening; readonly bootstrap: Listening | null },
): Promise<Listeners> {
  const api = await listen({ ...common, ...requested.api })
  try {
    const bootstrap = requested.bootstrap && (await listen({ ...common, ...requested.bootstrap }))
    const both = async (end: (listener: Listener) => Promise<void>) => {
      await Promise.all([end(api), bootstrap && end(bootstrap)])
    }
    return {
      api,
      bootstrap,
      drain: (timeoutMs) => both((listener) => listener.drain(timeoutMs)),
      close: () => both((listener) => listener.close()),
    }
  } catch (error) {
    await api.close()
    throw error
  }
}
