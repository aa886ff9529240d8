/**
 * Denies a tool call by its arguments.
 *
 * Prints:
 *   add_note {"name":"draft","text":"Not needed."}: Added "draft".
 *   delete_note {"name":"draft"}: Deleted "draft".
 *   delete_note {"name":"keep-milk"}: refused (policy_denied, rule keep)
 */
import { start } from './plat.ts'

await using plat = await start({
  rules: `
    - { name: notes, action: allow, match: { servers: [notes] } }
    - name: keep
      action: deny
      match: { servers: [notes], tools: [delete_note] }
      when: args.name.startsWith('keep-')
      reason: notes that begin with keep- are never deleted`,
})
const session = await plat.session()
await plat.call(session, 'add_note', { name: 'draft', text: 'Not needed.' })
await plat.call(session, 'delete_note', { name: 'draft' })
await plat.call(session, 'delete_note', { name: 'keep-milk' })
session.close()
