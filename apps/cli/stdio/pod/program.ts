/** The bridge of a stdio server in a pod: the module from which `tools/package/stdio.ts` makes one file. */
import { main } from './main.ts'

process.exitCode = await main(process.argv.slice(2))
// Nothing that a server left behind keeps the process.
process.exit()
