/** The stdio bridge as a program, which `plat up` starts. */
import { enableCompileCache } from 'node:module'

enableCompileCache()
const { main } = await import('./main.ts')
process.exit(await main())
