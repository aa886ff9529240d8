import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { dashboardFiles } from './build.ts'

const FOLDER = path.resolve(import.meta.dirname, '../../deploy/chart/dashboards')

for (const [name, text] of Object.entries(dashboardFiles())) writeFileSync(path.join(FOLDER, name), text)
