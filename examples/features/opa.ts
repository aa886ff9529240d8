/**
 * Lets Open Policy Agent decide beside the rules. Needs an OPA at OPA_URL: opa run --server --addr 127.0.0.1:8181 opa.rego
 *
 * Prints:
 *   add_note {"name":"short","text":"Fine."}: Added "short".
 *   add_note {"name":"long","text":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}: refused (policy_denied)
 */
import { start } from './plat.ts'

const opa = process.env.OPA_URL ?? 'http://127.0.0.1:8181'
await using plat = await start({ gateway: { policy: { rego: { url: `${opa}/v1/data/plat` } } } })
const session = await plat.session()
await plat.call(session, 'add_note', { name: 'short', text: 'Fine.' })
await plat.call(session, 'add_note', { name: 'long', text: 'x'.repeat(30) })
session.close()
