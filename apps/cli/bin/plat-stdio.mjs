#!/usr/bin/env node
import { launch } from '@plat/process/launch'

await launch(new URL('../stdio/main.ts', import.meta.url))
