import { type HttpFault, type Listener, type ListenOptions, listen } from '@plat/http'
import type { FastifyInstance } from 'fastify'

/** What the broker's listeners differ in. */
export type Listening = Pick<ListenOptions, 'address' | 'raw' | 'api'>

/** Every fault at the HTTP level has the shape of broker-token endpoints (document 1, "Errors"). */
export function brokerFault({ message }: HttpFault): { readonly error: string } {
  return { error: message }
}

/** Liveness alone: what the bootstrap address answers beside bootstrap (document 1, "Endpoints"). */
export function mountLiveness(app: FastifyInstance): void {
  app.get('/healthz', (_request, reply) => reply.header('cache-control', 'no-store').send({ status: 'ok' }))
}

/** Opens the API's listener, and the other one when there is one. When one cannot be opened, none stays open. */
export async function openListeners(
  common: Omit<ListenOptions, keyof Listening>,
  api: Listening,
  bootstrap: Listening | null,
): Promise<{ readonly api: Listener; readonly bootstrap: Listener | null }> {
  const first = await listen({ ...common, ...api })
  try {
    return { api: first, bootstrap: bootstrap && (await listen({ ...common, ...bootstrap })) }
  } catch (error) {
    await first.close()
    throw error
  }
}
