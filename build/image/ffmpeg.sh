#!/bin/sh
# ffmpeg.sh DIRECTORY: builds the distribution's ffmpeg from its source package, with only the parts that jobs and stills use
# (recorder/jobs/ffmpeg.ts, recorder/still/jpeg-maker.ts), into DIRECTORY/ffmpeg. The binary package depends on 200 others.
# Runs as root on Debian or a derivative with a compiler, nasm and libx264-dev.
set -eu

out=$1
work=$(mktemp -d)
list() { printf '%s' "$*" | tr ' ' ','; }

# Base images list the package repositories, but not always those of source packages.
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
  if [ -f "$file" ]; then sed 's/^deb /deb-src /' "$file" >"/etc/apt/sources.list.d/source-$(basename "$file" .list).list"; fi
done
for file in /etc/apt/sources.list.d/*.sources; do
  if [ -f "$file" ]; then sed -i 's/^Types: deb$/Types: deb deb-src/' "$file"; fi
done
apt-get -q update

# apt drops its privileges to download, so its user needs write access here.
chmod 777 "$work"
cd "$work"
apt-get -q source --only-source ffmpeg
cd ffmpeg-*/
./configure --prefix=/usr --enable-gpl --enable-libx264 \
  --disable-everything --disable-autodetect --disable-network --disable-doc --disable-debug --disable-ffplay --disable-ffprobe \
  --enable-protocol="$(list file pipe subfile)" --enable-demuxer=mov --enable-muxer="$(list mp4 image2pipe null)" \
  --enable-decoder="$(list h264 hevc mjpeg)" --enable-parser="$(list h264 hevc mjpeg)" --enable-encoder="$(list libx264 mjpeg)" \
  --enable-filter="$(list scale fps tpad settb setpts setsar format null concat trim)" \
  --enable-bsf="$(list extract_extradata h264_mp4toannexb hevc_mp4toannexb)"
make -j"$(nproc)" ffmpeg
mkdir -p "$out"
install -m 755 ffmpeg "$out/ffmpeg"
strip "$out/ffmpeg"
cp debian/copyright "$out/copyright"
dpkg-parsechangelog -S Version >"$out/version"
cd /
rm -rf "$work"
