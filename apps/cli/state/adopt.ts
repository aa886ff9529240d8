import { admin } from '../shared/admin-api.ts'
import { findGateway } from '../shared/gateway.ts'
import type { Output } from '../shared/output.ts'

/** `plat state adopt`. Throws `AdminRefusalError` with the code `conflict` when the database has lost nothing. */
export async function stateAdopt(options: { readonly dir?: string | undefined }, output: Output): Promise<number> {
  const { env } = await findGateway(options.dir)
  await admin(env, 'POST', '/v1/admin/state:adopt')
  output.out('the gateways go on with the state database as it is')
  return 0
}
