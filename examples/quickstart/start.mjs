#!/usr/bin/env node
import { launch } from '@plat/process/launch'

await launch(new URL('./start.ts', import.meta.url))
