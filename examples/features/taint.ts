/**
 * Stops a session that read secret data from sending anything out.
 *
 * Prints:
 *   add_note {"name":"plan","text":"Ship it."}: Added "plan".
 *   read_note {"name":"plan"}: Ship it.
 *   add_note {"name":"copy","text":"Ship it."}: refused (tainted_sink, rule stay)
 */
import { start } from './plat.ts'

await using plat = await start({
  server: `
trust: trusted
toolLabels:
  read_note: { taints: [secret] }
  add_note: { sinks: [shared] }`,
  rules: `
    - { name: notes, action: allow, match: { servers: [notes] } }
    - { name: stay, action: deny, match: { taints: [secret], sinks: ['*'] } }`,
})
const session = await plat.session()
await plat.call(session, 'add_note', { name: 'plan', text: 'Ship it.' })
await plat.call(session, 'read_note', { name: 'plan' })
await plat.call(session, 'add_note', { name: 'copy', text: 'Ship it.' })
session.close()
