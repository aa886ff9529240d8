import { readFile } from 'node:fs/promises'
import { readBundle } from '@plat/bundle'
import { silentLog } from '@plat/process'
import { BundleStore } from '../store.ts'

/** A process that puts bundles into force, one after the other, and says each when it is: `node applier.ts <dir> <state> <bundle>…`. */
const [dir = '', statePath = '', ...paths] = process.argv.slice(2)
const store = await BundleStore.open({ dir, statePath, log: silentLog })
for (const file of paths) {
  const bundle = await readBundle(await readFile(file), 1024 * 1024)
  if ('kind' in bundle) throw new Error(bundle.message)
  await store.put(bundle)
  process.stdout.write(`${bundle.statement.revision}\n`)
}
