/**
 * Removes personal data from arguments before they leave the gateway.
 *
 * Prints:
 *   add_note {"name":"ada","text":"Write to ada@example.com."}: Added "ada".
 *   read_note {"name":"ada"}: Write to [REDACTED:email].
 */
import { start } from './plat.ts'

await using plat = await start({
  gateway: {
    dlpProfiles: { standard: { detectors: ['email', 'credit_card'] } },
    dlp: { defaultProfile: 'standard' },
  },
})
const session = await plat.session()
await plat.call(session, 'add_note', { name: 'ada', text: 'Write to ada@example.com.' })
await plat.call(session, 'read_note', { name: 'ada' })
session.close()
