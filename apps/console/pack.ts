import path from 'node:path'
import { writeAssets } from './asset.ts'
import { buildConsole } from './build.ts'

/** `node apps/console/pack.ts`: builds the console where an image without development dependencies finds it. */
const { assets } = await buildConsole(import.meta.dirname)
await writeAssets(path.join(import.meta.dirname, 'built'), assets)
console.log(`built apps/console/built: ${assets.length} files`)
