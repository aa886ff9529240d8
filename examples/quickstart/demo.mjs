#!/usr/bin/env node
import { launch } from '@plat/process/launch'

await launch(new URL('./demo.ts', import.meta.url))
