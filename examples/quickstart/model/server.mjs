#!/usr/bin/env node
import { launch } from '@plat/process/launch'

await launch(new URL('./server.ts', import.meta.url))
