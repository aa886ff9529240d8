/**
 * Holds a tool call until a person approves it.
 *
 * Prints:
 *   add_note {"name":"draft","text":"Not needed."}: Added "draft".
 *   delete_note of assistant waits for approval
 *   delete_note {"name":"draft"}: Deleted "draft".
 */
import { start } from './plat.ts'

await using plat = await start({
  rules: `
    - { name: notes, action: allow, match: { servers: [notes], tools: [add_note] } }
    - { name: delete, action: require_approval, match: { servers: [notes], tools: [delete_note] } }`,
})
const session = await plat.session()
await plat.call(session, 'add_note', { name: 'draft', text: 'Not needed.' })
const call = plat.call(session, 'delete_note', { name: 'draft' })

// An approver: plat approvals watch shows the call and decides by one key.
let pending = []
while (pending.length === 0) pending = JSON.parse(await plat.command('approvals', 'list', '-o', 'json'))
const [{ id, tool, agent }] = pending
console.log(`${tool} of ${agent} waits for approval`)
await plat.command('approvals', 'approve', id, '-reason', 'the draft is not needed')
await call
session.close()
