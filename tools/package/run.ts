import path from 'node:path'
import { buildPackage } from './build.ts'

/** `npm run build:package [folder]`: writes the package of all programs, ready for `npm pack` and `npm publish`. */
const root = path.resolve(import.meta.dirname, '../..')
const out = path.resolve(root, process.argv[2] ?? 'apps/cli/dist')
await buildPackage(root, out)
console.log(`built ${path.relative(process.cwd(), out)}`)
